from . import metrics as metrics
from .decision import Decision as Decision
from .errors import (
    BimichiError as BimichiError,
    InvalidInputError as InvalidInputError,
    ModelFileError as ModelFileError,
    NotRunError as NotRunError,
)
from .evaluate.comparison import Comparison as Comparison
from .evaluate.engine import compare as compare
from .fit.solvers import ConvexSolver as ConvexSolver, EvolutionarySolver as EvolutionarySolver
from .integral.labelled import choquet as choquet
from .integral.linear import linear_form as linear_form, usage_counts as usage_counts
from .link import Link as Link
from .measures.additive import AdditiveBiCapacity as AdditiveBiCapacity
from .measures.bicapacity import BiCapacity as BiCapacity
from .measures.capacity import Capacity as Capacity
from .methods import (
    MICI as MICI,
    BiCapacityQP as BiCapacityQP,
    BiMIChI as BiMIChI,
    BiMIChICV as BiMIChICV,
    BinaryMICI as BinaryMICI,
    ChoquetQP as ChoquetQP,
    ConstantFusion as ConstantFusion,
    DetectorMask as DetectorMask,
    KNNFusion as KNNFusion,
    MaxFusion as MaxFusion,
    MeanFusion as MeanFusion,
    MICIRegressor as MICIRegressor,
    MinFusion as MinFusion,
    SceneKFold as SceneKFold,
    SingleSource as SingleSource,
    SVMFusion as SVMFusion,
    WeightedMeanFusion as WeightedMeanFusion,
    make_bag_scorer as make_bag_scorer,
)
from .methods.bank import BankFusion as BankFusion
from .methods.registry import paper_methods as paper_methods
from .report import write_report as write_report
from .rule import FusionRule as FusionRule, as_rule as as_rule
from .scenes.bags import Bags as Bags
from .scenes.dataset import Dataset as Dataset
from .scenes.scene import Scene as Scene, join_bags as join_bags
from .studio.start import open_studio as open_studio

__version__: str
