"""Siderite: one program that runs servers, virtual and physical, behind the Nova and Ironic APIs.

The rooms of the package and the one direction in which data flows between them are described in
ARCHITECTURE.md. The build reads the version below; nothing else in this file matters at run time.
"""

__version__ = "0.1.0"
