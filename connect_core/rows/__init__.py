"""Records with a shape: a batch of rows is an Arrow struct array, whose type is what a document declares.

`types` is what documents write of types, and loads no Arrow; `schema` makes Arrow types of them. `json_reading` and
`json_writing` turn JSON texts into rows and rows into JSON texts, column by column; `json_columns` and `json_faults`
are parts of the one, `json_escaping` and `json_unwritable` of the other. Pure.
"""
