"""Swift with its four servers in one process, for tests: `server.py DIRECTORY PORT`, the proxy at PORT and the others at the ports after it."""
import sys
import time

from swift.common import utils

directory, port = sys.argv[1], int(sys.argv[2])
utils.SWIFT_CONF_FILE = f"{directory}/swift.conf"
utils.eventlet_monkey_patch()

import eventlet
from eventlet import wsgi
from swift.common.http_protocol import SwiftHttpProtocol
from swift.common.wsgi import loadapp


class Cache:
    """What memcached would keep."""

    def __init__(self):
        self.values = {}

    def get(self, key, **_):
        value, until = self.values.get(key, (None, 0))
        return value if until == 0 or until > time.time() else None

    def set(self, key, value, time=0, **_):
        self.values[key] = (value, now() + time if time else 0)

    def delete(self, key, **_):
        self.values.pop(key, None)


def with_cache(app, cache):
    def cached(environ, start):
        environ["swift.cache"] = cache
        return app(environ, start)

    return cached


cache = Cache()
now = time.time


def serve(number, name):
    listener = eventlet.listen(("127.0.0.1", port + number))
    app = with_cache(loadapp(f"{directory}/{name}.conf", global_conf={"log_name": name}), cache)
    eventlet.spawn(wsgi.server, listener, app, log_output=False, protocol=SwiftHttpProtocol)


utils.validate_configuration()
for number, name in enumerate(["proxy", "account", "container", "object"]):
    serve(number, name)
print("ready", flush=True)
while True:
    eventlet.sleep(60)
