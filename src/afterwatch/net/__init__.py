"""Net: the one way out. One client resolves, checks the address, connects to the checked address, caps what returns.

Nothing here is used unless a setting of the user names a server. What is sent is redacted first.
"""
