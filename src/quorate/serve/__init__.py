"""What answers over HTTP; needs the extra ``serve``."""
