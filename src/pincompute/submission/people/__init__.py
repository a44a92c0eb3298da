"""Who asks: a file for each that can vouch for a person or a program, and the door before which all of them stand."""
