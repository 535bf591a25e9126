"""What servers are made of: flavors and images."""
