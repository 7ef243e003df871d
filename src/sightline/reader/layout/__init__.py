"""Reading order, paragraphs, headings and tables."""
