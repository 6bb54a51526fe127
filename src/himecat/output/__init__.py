"""Where documents were placed, as tables: files for a spreadsheet, columns of a data frame."""
