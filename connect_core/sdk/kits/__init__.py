"""Bases for systems: the mechanism is inside, and the author writes what is particular.

SimpleSink         writes, at least once
KeyedSink          stores rows by their identity: what is stored again changes nothing
TransactionSink    writes rows and a marker in one transaction, exactly once
LogSink            appends to a log that keeps coordinates with each record, exactly once
CommitSink         stages files, and shows them by one commit that carries a marker, exactly once
PolledSource       is asked for what comes behind a checkpoint
LogSource          reads logs that have offsets of their own
ReceivedSource     receives what a server sends, and acknowledges it
"""
