"""How a document is seen: its words, topics, metadata values and encoder vectors."""
