import CountersignSchemes
import CountersignWire

/// The requests that the benchmark judges: one of typical shape for each scheme.
enum BenchRequests {
    static let host = "api.example.com"

    /// As the load generator of `script/bench` sends it.
    static func get(_ number: Int) -> Draft {
        var draft = Draft(
            method: "GET", target: Array("/v2/orders/4711/items?expand=prices&page=2".utf8), authority: host)
        draft.setField("User-Agent", to: "Shop/4.2 (iPhone; iOS 19.1)")
        draft.setField("Accept", to: "application/json")
        draft.setField("Accept-Encoding", to: "identity")
        // With Host, Countersign-Release, Signature-Input and Signature: seven.
        return draft
    }

    static func message(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/v2/orders/4711/items?expand=prices&page=2".utf8), authority: host)
        draft.setField("User-Agent", to: "Shop/4.2 (iPhone; iOS 19.1)")
        draft.setField("Accept", to: "application/json")
        draft.setField("Accept-Encoding", to: "gzip, br")
        draft.setField("Accept-Language", to: "de-CH, de;q=0.9, en;q=0.8")
        draft.setField("Content-Type", to: "application/json")
        draft.setField("Idempotency-Key", to: "5d0f6f0e-9d8b-4f6e-8d6c-1f1b7c6c8a11")
        draft.body = [UInt8](repeating: UInt8(ascii: "b"), count: 512)
        // With Host, Content-Length, Content-Digest, Countersign-Release, Signature-Input and Signature:
        // twelve.
        return draft
    }

    /// sigv4 has no nonce, so requests of the same second must differ in their target.
    static func amazon(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/v2/orders/\(number)/items?expand=prices&page=2".utf8),
            authority: host)
        draft.setField("User-Agent", to: "Shop/4.2 (iPhone; iOS 19.1)")
        draft.setField("Accept", to: "application/json")
        draft.setField("Content-Type", to: "application/json")
        draft.body = [UInt8](repeating: UInt8(ascii: "b"), count: 512)
        // With Host, Content-Length, X-Amz-Date, X-Amz-Content-Sha256 and Authorization: eight.
        return draft
    }

    static func form(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items.php".utf8), authority: host)
        draft.body = Array(
            "userId=3670537&token=MtYiX1qRWzXF6bEKTi7LlVKJwXZrwRWGcjiBUvSY&phoneNo=0791234567".utf8)
        return draft
    }

    static func query(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/apps/3/events?userId=3670537&page=2&phoneNo=0791234567".utf8),
            authority: host)
        draft.setField("Content-Type", to: "application/json")
        // The replay guard remembers this request by its signature, so no two requests may be equal.
        draft.body =
            Array("\(UInt64.random(in: 0...UInt64.max))".utf8)
            + [UInt8](repeating: UInt8(ascii: "b"), count: 492)
        return draft
    }

    static func parameters(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items".utf8), authority: host)
        draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
        draft.body = Array("userId=3670537&page=2&phoneNo=0791234567&city=Z%C3%BCrich".utf8)
        return draft
    }

    static func object(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items?page=2".utf8), authority: host)
        draft.setField("Content-Type", to: "application/json")
        draft.body = Array(
            (#"{"userId":3670537,"city":"Z\u00fcrich","tags":["a","b"],"phoneNo":"0791234567","#
                + #""new":true,"note":null}"#).utf8)
        return draft
    }
}
