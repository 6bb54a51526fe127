"""Every compiled loop, and what it is compiled with."""
