"""A stand-in for polkit that allows everything, on a private bus: fprintd asks it who may use a sensor, and is the real one.

Run by the system's Python, which has the D-Bus bindings: `polkit.py` on the bus that DBUS_SYSTEM_BUS_ADDRESS names.
"""

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

INTERFACE = "org.freedesktop.PolicyKit1.Authority"


class Authority(dbus.service.Object):
    @dbus.service.method(INTERFACE, in_signature="(sa{sv})sa{ss}us", out_signature="(bba{ss})")
    def CheckAuthorization(self, subject, action, details, flags, cancellation):
        return True, False, dbus.Dictionary({}, signature="ss")

    @dbus.service.method("org.freedesktop.DBus.Properties", in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return {"BackendName": "stand-in", "BackendVersion": "1", "BackendFeatures": dbus.UInt32(0)}


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SystemBus()
# Held by a name, for a name that is collected is given back.
name = dbus.service.BusName("org.freedesktop.PolicyKit1", bus)
authority = Authority(bus, "/org/freedesktop/PolicyKit1/Authority")
print("ready", flush=True)
GLib.MainLoop().run()
