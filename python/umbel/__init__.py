"""Umbel, a live dashboard for Celery.

The program ``umbel`` is a binary and needs nothing of this package. What Python programs use of it is in
:mod:`umbel.celery`.
"""
