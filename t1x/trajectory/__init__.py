"""From turns to training samples: stitching and audit."""
