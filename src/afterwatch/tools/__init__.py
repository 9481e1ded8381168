"""What an agent may call: one registry, thin definitions; and a front door for hosts that speak MCP."""
