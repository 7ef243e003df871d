"""The MCP server: Sightline's tools for any host, on stdio and at /mcp of the proxy.

The protocol is the official SDK's; of it, and of the rooms below, a module is loaded when it is first needed.
"""
