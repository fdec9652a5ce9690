"""What a statement of a `sql` step may use: functions and types by name, and what the rest is called. Pure, light.

A list of what is allowed, not of what is not: another version of DuckDB brings other functions. Each of these makes one
value of the values of one record, and always the same. Left out are therefore: clocks, random numbers and settings;
`list_distinct` and what else has no order; powers, logarithms and angles, whose last digit is the machine's; what makes
a long text or list of a number, as `repeat` and `range`, since memory of that kind has no limit.
"""

from __future__ import annotations

from collections.abc import Mapping

DUCKDB = "2.0.1"
"""The only version that works out statements: another one may give other values."""

_OPERATORS = "+ - * / // % & | ~ << >> xor || ~~ !~~ ~~* !~~* ~~~ -> ->>"
_NUMBERS = """
abs ceil ceiling floor round round_even roundbankers trunc sign sqrt mod gcd lcm greatest least isnan isinf isfinite
add subtract multiply divide
"""
_TEXTS = """
lower upper lcase ucase length len char_length character_length strlen octet_length trim ltrim rtrim left right substr
substring concat concat_ws replace reverse translate contains starts_with ends_with prefix suffix position strpos instr
ascii unicode ord chr split_part string_split str_split string_to_array split string_split_regex str_split_regex
regexp_matches regexp_full_match regexp_extract regexp_extract_all regexp_replace regexp_escape strip_accents
nfc_normalize lpad rpad url_encode url_decode overlay array_to_string like_escape not_like_escape ilike_escape
not_ilike_escape
"""
_BYTES = "hex to_hex from_hex unhex to_base64 base64 from_base64 encode decode md5 sha1 sha256"
_MOMENTS = """
date_part datepart date_trunc datetrunc date_diff datediff date_sub datesub date_add year month day hour minute second
millisecond microsecond nanosecond quarter week weekofyear weekday isodow dayofweek dayofmonth dayofyear yearweek
isoyear dayname monthname last_day strftime strptime try_strptime epoch epoch_ms epoch_us epoch_ns to_timestamp
make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns timezone to_microseconds to_milliseconds
to_seconds to_minutes to_hours to_days to_weeks to_months to_quarters to_years
"""
_CHOICES = "if nullif"
_LISTS = """
list_value list_transform list_apply array_transform apply list_filter array_filter filter list_contains list_has
array_contains array_has list_has_any list_has_all list_position list_indexof list_extract list_element array_extract
list_slice array_slice list_concat list_cat array_concat list_append list_prepend list_reverse array_reverse list_sort
array_sort list_reverse_sort flatten list_sum list_min list_max list_avg list_count list_first list_last list_bool_and
list_bool_or
"""
_OBJECTS = """
struct_pack struct_extract struct_insert struct_update json_extract json_extract_path json_extract_string
json_extract_path_text json_value json_exists json_type json_valid json_array_length json_keys json_contains to_json
json_object json_array json_quote
"""
FUNCTIONS = frozenset(" ".join((_OPERATORS, _NUMBERS, _TEXTS, _BYTES, _MOMENTS, _CHOICES, _LISTS, _OBJECTS)).split())

PADDING = frozenset({"lpad", "rpad"})
MAX_PADDED = 10_000
"""Characters to which a text may be padded."""

_TYPES = """
boolean bool logical tinyint int1 smallint int2 int16 short integer int int4 int32 signed bigint int8 int64 long
hugeint int128 utinyint uint8 usmallint uint16 uinteger uint32 ubigint uint64 float float4 real double float8
decimal numeric dec varchar text string char bpchar blob bytea binary varbinary date time time_ns timestamp datetime
timestamp_s timestamp_ms timestamp_us timestamp_ns timestamptz timestamptz_ns interval uuid json list struct
"""
TYPES = frozenset(_TYPES.split()) | {"timestamp with time zone"}
"""As DuckDB's parser names them, in small letters."""

NOT_THE_SAME = frozenset(
    {
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user", "user"),
        *("session_user", "current_role", "current_catalog", "current_schema", "current_database"),
    }
)
"""Functions that stand without brackets, like columns."""

CALLED: Mapping[str, str] = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window (OVER)",
    "STAR": "* or COLUMNS inside an expression",
    "PARAMETER": "a parameter",
    "POSITIONAL_REFERENCE": "a column by its number",
    "COLLATE": "COLLATE",
    "DEFAULT": "DEFAULT",
}
"""Kinds of expressions that are refused."""

CLAUSES: Mapping[str, str] = {
    "cte_map": "WITH",
    "group_expressions": "GROUP BY",
    "group_sets": "GROUP BY",
    "aggregate_handling": "GROUP BY",
    "having": "HAVING",
    "sample": "SAMPLE",
    "qualify": "QUALIFY",
    "modifiers": "DISTINCT, ORDER BY or LIMIT",
}
"""Clauses that are refused, by their part of a SELECT."""

SOURCES: Mapping[str, str] = {
    "JOIN": "a join",
    "TABLE_FUNCTION": "a table function",
    "SUBQUERY": "a subquery",
    "EXPRESSION_LIST": "VALUES",
    "SHOW_REF": "DESCRIBE or SHOW",
    "PIVOT": "PIVOT",
    "EMPTY": "nothing",
}
"""What FROM may not name, by what DuckDB calls it."""
