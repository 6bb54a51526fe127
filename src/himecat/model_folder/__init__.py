"""Model folders: JSON and safetensors, whole or not at all."""
