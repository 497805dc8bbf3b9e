from .comparison import Comparison as Comparison, Result as Result
from .engine import (
    Method as Method,
    compare as compare,
    paper_methods as paper_methods,
    register_method as register_method,
    registered_methods as registered_methods,
)
from .metrics import Scores as Scores, scores as scores
