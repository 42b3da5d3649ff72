// Spans of arrays, for whoever imports this module: the standard library's own property is newer than iOS 16.
@_exported import CountersignMemory
