from .write import (
    IndexEntry as IndexEntry,
    Report as Report,
    thumbnail as thumbnail,
    write_index as write_index,
    write_report as write_report,
)
