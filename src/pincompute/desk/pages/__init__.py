"""The web pages: their scripts and styles, and what a browser gets of them."""
