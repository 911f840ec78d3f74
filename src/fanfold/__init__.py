"""Fanfold prepares training data for foundation models: documents and videos fan out and fold back."""
