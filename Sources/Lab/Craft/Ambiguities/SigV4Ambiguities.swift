/// Where AWS Signature Version 4 has more than one reading: parameters are sorted, and only named fields are signed.
enum SigV4Ambiguities {
    static let all = [
        Ambiguity("type-unsigned", "says that the signed body is something else, and puts parameters into the query") {
            request, order in
            var copy = request
            copy.fields["Content-Type"] = "text/plain"
            copy.queryForm = RawRequest.transfer(form: order, namingThePayer: order.payer).bodyForm ?? RawForm([])
            return [copy]
        },
        Ambiguity("field-in-two-lines", "sends fields that are signed twice, with other values behind", apply: twice),
        Ambiguity("payload-unsigned", "says that the body is not signed, and changes it", apply: unsignedPayload),
    ]

    private static func twice(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        var copy = request.paying(order.payee)
        copy.fields.lines.append(.init("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"))
        return [copy]
    }

    private static func unsignedPayload(_ request: RawRequest, _ order: Order) -> [RawRequest] {
        var (said, left) = (request.paying(order.payee), request.paying(order.payee))
        said.fields["X-Amz-Content-Sha256"] = "UNSIGNED-PAYLOAD"
        left.fields["X-Amz-Content-Sha256"] = nil
        return [said, left]
    }
}
