import CountersignSchemes
import CountersignWire

/// What the bench judges: requests of everyday shape, one for each scheme.
enum BenchRequests {
    static let host = "api.example.com"

    static func message(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/v2/orders/4711/items?expand=prices&page=2".utf8), authority: host)
        draft.set("User-Agent", "Shop/4.2 (iPhone; iOS 19.1)")
        draft.set("Accept", "application/json")
        draft.set("Accept-Encoding", "gzip, br")
        draft.set("Accept-Language", "de-CH, de;q=0.9, en;q=0.8")
        draft.set("Content-Type", "application/json")
        draft.set("Idempotency-Key", "5d0f6f0e-9d8b-4f6e-8d6c-1f1b7c6c8a11")
        draft.body = [UInt8](repeating: UInt8(ascii: "b"), count: 512)
        // With Host, Content-Length, Content-Digest, Countersign-Release, Signature-Input and Signature: twelve.
        return draft
    }

    /// Without a nonce, requests of one second differ by what they ask for.
    static func amazon(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/v2/orders/\(number)/items?expand=prices&page=2".utf8), authority: host)
        draft.set("User-Agent", "Shop/4.2 (iPhone; iOS 19.1)")
        draft.set("Accept", "application/json")
        draft.set("Content-Type", "application/json")
        draft.body = [UInt8](repeating: UInt8(ascii: "b"), count: 512)
        // With Host, Content-Length, X-Amz-Date, X-Amz-Content-Sha256 and Authorization: eight.
        return draft
    }

    static func form(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items.php".utf8), authority: host)
        draft.body = Array("userId=3670537&token=MtYiX1qRWzXF6bEKTi7LlVKJwXZrwRWGcjiBUvSY&phoneNo=0791234567".utf8)
        return draft
    }

    static func query(_ number: Int) -> Draft {
        var draft = Draft(
            method: "POST", target: Array("/apps/3/events?userId=3670537&page=2&phoneNo=0791234567".utf8),
            authority: host)
        draft.set("Content-Type", "application/json")
        // Its signature is what the request is remembered by, so no two are alike.
        draft.body =
            Array("\(UInt64.random(in: 0...UInt64.max))".utf8) + [UInt8](repeating: UInt8(ascii: "b"), count: 492)
        return draft
    }

    static func parameters(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items".utf8), authority: host)
        draft.set("Content-Type", "application/x-www-form-urlencoded")
        draft.body = Array("userId=3670537&page=2&phoneNo=0791234567&city=Z%C3%BCrich".utf8)
        return draft
    }

    static func object(_ number: Int) -> Draft {
        var draft = Draft(method: "POST", target: Array("/api/items?page=2".utf8), authority: host)
        draft.set("Content-Type", "application/json")
        draft.body = Array(
            #"{"userId":3670537,"city":"Z\u00fcrich","tags":["a","b"],"phoneNo":"0791234567","new":true,"note":null}"#
                .utf8)
        return draft
    }
}
