// Whoever imports `Countersign` has these names, too: whom he trusts, what carries his requests and where his secrets lie are part of
// what he holds in his hands.
@_exported import CountersignTransport
@_exported import CountersignTrust
@_exported import CountersignVault
