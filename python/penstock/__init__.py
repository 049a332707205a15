# SPDX-License-Identifier: Apache-2.0
"""Penstock in Python: what a run has left behind, as tables and pictures."""
