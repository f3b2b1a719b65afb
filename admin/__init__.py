"""What operators and neighbouring processes talk to: gRPC services and commands beside the data path."""
