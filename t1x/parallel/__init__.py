"""How a network is spread over devices."""
