import CPQ
import Glibc

/// The rows that a command has returned, in libpq's memory.
final class PostgreSQLResult {
    let handle: OpaquePointer
    let functions: UnsafePointer<cs_pq_functions>

    init(_ handle: OpaquePointer, of library: PostgreSQLLibrary) {
        self.handle = handle
        functions = library.functions
    }

    deinit { functions.pointee.PQclear(handle) }

    var count: Int32 { functions.pointee.PQntuples(handle) }

    /// The number of rows that the command has returned or changed.
    var rows: Int { functions.pointee.PQcmdTuples(handle).flatMap { Int(String(cString: $0)) } ?? 0 }
}

/// A value of a row in PostgreSQL's binary format. Source: its documentation, "Binary format" of libpq.
struct PostgreSQLValue {
    /// The object ids of types; fixed in the server's catalogue.
    enum TypeID {
        static let bool: UInt32 = 16
        static let bytes: UInt32 = 17
        static let int8: UInt32 = 20
        static let int4: UInt32 = 23
    }

    private let functions: UnsafePointer<cs_pq_functions>
    private let result: OpaquePointer
    private let row: Int32
    private let column: Int32

    init(_ functions: UnsafePointer<cs_pq_functions>, of result: OpaquePointer, row: Int32, column: Int32) {
        self.functions = functions
        self.result = result
        self.row = row
        self.column = column
    }

    var isNull: Bool { functions.pointee.PQgetisnull(result, row, column) != 0 }

    var bytes: UnsafeRawBufferPointer {
        let start = functions.pointee.PQgetvalue(result, row, column)
        return UnsafeRawBufferPointer(
            start: start, count: Int(functions.pointee.PQgetlength(result, row, column)))
    }

    /// Zero for null.
    var integer: Int64 {
        let bytes = bytes
        switch bytes.count {
        case 8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case 4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case 1: return Int64(bytes[0])
        default: return 0
        }
    }
}
