"""Records with a shape: a batch of rows is an Arrow struct array, whose type is what a document declares.

`types` is what documents write of types, and loads no Arrow; `schema` makes Arrow types of them. `json_reading` and
`json_writing` turn JSON texts into rows and rows into JSON texts, column by column; `json_columns` and `json_faults`
are parts of the one, `json_escaping` and `json_unwritable` of the other. `json_envelopes` and `envelope_writing` do the
same for the envelopes of Kafka Connect and RocketMQ Connect; `envelope_schemas` compares the schema that comes with a
payload with the declared types, `envelope_columns` makes these of what JSON has for them. Of Avro, `avro_schemas` reads
schemas, `avro_parts` compares them with the declared types, `avro_frames` is what stands before a value; values are the
work of `avro_reading`, `avro_strict` and `avro_writing`. Of Protobuf, `protobuf_schemas` reads descriptors, and
`protobuf_parts` and `protobuf_frames` do what those of Avro do; `protobuf_wire` makes the class by which messages are
read and written, in `protobuf_reading`, `protobuf_columns`, `protobuf_strict` and `protobuf_writing`.
`reading_by_schema` is what both have in common. Pure.
"""
