"""What `/vision-proxy …` means and does, once for the shell, the proxy, MCP and ACP.

`verb_table` has the verbs, their arguments and their commands, `grammar` parses a text into one of these commands, and
`execution` does what it says.
"""
