"""Speech made harder to recognise: what is done to it before it is given away."""
