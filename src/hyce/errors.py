"""Every error that hyce raises on purpose.

    HyceError                 exit code 1; its text is one line: what failed, on what, what to do
    ├── UsageError            exit code 2; the call itself is wrong
    ├── ConfigError           hyce.toml, a HYCE_* variable or their permissions
    ├── PolicyError           the site's policy does not allow it
    ├── StateError            the user's state folder could be read or replaced by others
    ├── SourceError           a documentation source, or one page of it, can't be read
    ├── ModelError            model files are missing, broken, or of another kind
    ├── StoreError            an index is missing, damaged, busy, or made with other settings
    ├── CatalogueError        a catalogue file is broken or can't be trusted
    ├── BundleError           a bundle for machines without internet can't be made
    └── EndpointError         a model endpoint is down, slow, refuses, or answers garbage

The edge (cli.main, later the web page) turns one into an exit code or an HTTP status, once.
"""


class HyceError(Exception):
    """The root; carries one line that is fit to be shown to a user."""

    exit_code = 1


class UsageError(HyceError):
    """The call is wrong: an unknown option, an empty question, a value out of range."""

    exit_code = 2


class ConfigError(HyceError):
    """A setting is unknown, of the wrong type, or in a file that others can write."""


class PolicyError(HyceError):
    """The site's policy forbids what was asked for."""


class StateError(HyceError):
    """The user's state folder is a link, somebody else's, or open to others: nothing runs."""


class SourceError(HyceError):
    """A source or one of its pages can't be read; a page's error never stops the others."""


class ModelError(HyceError):
    """Model files are missing, incomplete, or not what their description says."""


class StoreError(HyceError):
    """An index is missing, damaged, being written by another process, or made with other settings."""


class CatalogueError(HyceError):
    """A catalogue file can't be read, doesn't follow its schema, or can be written by others."""


class BundleError(HyceError):
    """A package, a model or the index can't be packed, or the bundle's file can't be written."""


class EndpointError(HyceError):
    """A model endpoint could not be reached, or what it sent back can't be used."""
