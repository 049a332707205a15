# SPDX-License-Identifier: Apache-2.0
"""Figures of the papers, drawn from runs of the scenarios of the same names, next to which they are installed."""
