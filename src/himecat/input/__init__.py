"""From files, tables and lists to checked documents, their tree and their labels."""
