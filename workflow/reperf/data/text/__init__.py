"""Text on its way into records: documents, WordPiece, pairs of sentences, masks."""
