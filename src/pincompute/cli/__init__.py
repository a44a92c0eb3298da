"""The hand: words in, words out; it talks to the desk."""
