"""The review page and the API: a fitted model, its documents and what people say of them, served over HTTP."""
