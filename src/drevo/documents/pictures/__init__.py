"""Drawings and curves as SVG."""
