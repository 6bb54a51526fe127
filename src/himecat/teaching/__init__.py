"""What a fitted model asks people, and what it learns from their answers."""
