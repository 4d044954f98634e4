"""How well passages and commands are found, without a judge: retrieval, routing, similarity, gate."""
