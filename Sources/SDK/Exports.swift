// An app that imports `Countersign` gets these names, too: its code names the trust, the transport and the
// vault.
@_exported import CountersignTransport
@_exported import CountersignTrust
@_exported import CountersignVault
