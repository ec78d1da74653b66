"""Why a server could not be reached, in words."""

import os


def reason(exc: Exception) -> str:
    """Return why a request failed, without the whole address that some errors show."""
    from aiohttp import (
        ClientConnectorCertificateError,
        ClientConnectorError,
        ClientOSError,
        ClientPayloadError,
        ClientResponseError,
        ClientSSLError,
        InvalidURL,
    )

    match exc:
        case ClientResponseError():
            why = exc.message
        case InvalidURL():
            why = "it is no address"
        case ClientConnectorCertificateError():
            found = exc.certificate_error
            why = f"its certificate is not trusted: {getattr(found, 'verify_message', found)}"
        case ClientSSLError():
            # Its number is one of OpenSSL's errors, and none of the system's.
            why = f"no encrypted connection: {exc.os_error}"
        case ClientOSError() if (exc.errno or 0) > 0:
            why = os.strerror(exc.errno or 0)
        case ClientPayloadError():
            why = "the answer broke off"
        case ClientOSError() if not isinstance(exc, ClientConnectorError):
            why = "the connection broke off"
        case _:
            why = str(exc)
    return why
