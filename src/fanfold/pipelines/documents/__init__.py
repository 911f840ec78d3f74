"""PDF files to Markdown and records: the ready-made pipeline ``documents`` (extra ``documents``).

    fanfold run documents corpus/ --out out/

Importing it costs nothing: PDFium, NumPy and the OCR models are loaded in the workers that use them.
"""

from fanfold.pipelines.documents.pipeline import documents, sinks, source

__all__ = ["documents", "sinks", "source"]
