"""`DetectorMask`: the person masks of a pre-trained network, or masks made elsewhere, as a fused map."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bimichi._checks import check_choice, check_integer, check_number, refuse_masked
from bimichi.errors import InvalidInputError, ModelFileError, NotRunError
from bimichi.integral.planes import check_n_jobs
from bimichi.methods.base import Fusion, Needs
from bimichi.methods.networks import (
    TorchvisionMaskRCNN,
    Wanted,
    YoloSeg,
    ZooMaskRCNN,
    import_pillow,
    open_session,
    shown,
)

_OPENING = Lock()
NETWORKS: tuple[Any, ...] = (ZooMaskRCNN, TorchvisionMaskRCNN, YoloSeg)
"""In the order in which signatures are tried; each says what it `expected`."""


@dataclass(eq=False, repr=False)
class DetectorMask(Fusion):
    """Persons as a pre-trained instance-segmentation network finds them, in the RGB image alone.

    The network is an ONNX file with one of three signatures, by which it is recognised: the Mask R-CNN [1]_ of the ONNX
    model zoo (MaskRCNN-10 and -12), torchvision's export of Mask R-CNN, or a YOLO segmentation network (YOLOv8-seg,
    YOLO11-seg and the like, exported without non-maximum suppression). Images are prepared, and masks made, as their
    authors did. Nothing is learned here. Needs ``pip install 'bimichi[detector]'``.

    Parameters
    ----------
    model : path, optional
        The ONNX file.
    masks : array, path, or mapping of name to array or path, optional
        Masks made elsewhere, instead of a network: one mask, one PNG file, a folder of ``<name>.png``, or a mapping.
        Pixels that are not zero are a person's; with ``output="score"``, 8-bit values are divided by 255, and floats
        are used as they are. No threshold applies to them.
    target_class : int, optional
        The label of targets. By default "person" of COCO: 1 for Mask R-CNN, where 0 is the background, 0 for YOLO.
    score_threshold : float, optional
        A detection must score above it; by default 0.7 for Mask R-CNN and 0.25 for YOLO, as their authors have it.
    mask_threshold : float, default=0.5
        A pixel belongs to a detection where its mask is above it.
    output : {"mask", "score"}
        Whether the map is 1 on masks, or the largest score of the masks there. It is 0 elsewhere.
    n_jobs : int, optional
        Number of threads that run the network; all cores by default.

    Attributes
    ----------
    session_ : onnxruntime.InferenceSession or None
        The network. Pickles leave it out; it is opened again when needed.

    References
    ----------
    .. [1] K. He, G. Gkioxari, P. Dollár and R. Girshick, "Mask R-CNN", ICCV 2017.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((2, 3, 3), np.uint8)
    >>> DetectorMask(masks=np.array([[0, 255, 0], [0, 255, 255]])).fit().fuse(image)
    array([[0., 1., 0.],
           [0., 1., 1.]], dtype=float32)
    """

    needs: ClassVar[Needs] = "image"

    model: str | PathLike[str] | None = None
    masks: Any = None
    target_class: int | None = None
    score_threshold: float | None = None
    mask_threshold: float = 0.5
    output: Literal["mask", "score"] = "mask"
    n_jobs: int | None = None

    def fit(self, X: Any = None, y: Any = None, bags: Any = None) -> Self:
        """Check the parameters and open the network; data are ignored, as nothing is learned.

        Raises
        ------
        NotRunError
            If neither `model` nor `masks` is given.
        """
        if self.model is None and self.masks is None:
            raise NotRunError("no detector weights given", code="detector-missing")
        if self.model is not None and self.masks is not None:
            raise InvalidInputError("Both model and masks are given; leave out one of them.", code="detector-twice")
        check_choice(self.output, "output", ("mask", "score"))
        check_number(self.mask_threshold, "mask_threshold", 0, 1)
        if self.score_threshold is not None:
            check_number(self.score_threshold, "score_threshold", 0, 1)
        if self.target_class is not None:
            check_integer(self.target_class, "target_class", 0)
        check_n_jobs(self.n_jobs)
        if self.model is None:
            _check_masks(self.masks)
        self.session_ = None if self.model is None else open_session(self.model, self.n_jobs)
        if self.session_ is not None:
            _network_of(self.session_, self.model)  # raises if it is unknown
        return self

    @property
    def title(self) -> str:
        """The kind of network, by its signature: "Mask R-CNN" or "YOLO-seg"; ready-made masks are of the former."""
        network = ZooMaskRCNN if self.model is None else _network_of(open_session(self.model, 1), self.model)
        return str(network.title)

    def fuse(self, X: ArrayLike, name: str | None = None) -> NDArray[np.float32]:
        """Return the map of one image, in [0, 1].

        Parameters
        ----------
        X : array-like of shape (height, width, 3)
            The RGB image: uint8, or floats in [0, 1].
        name : str, optional
            Which mask to take, where `masks` is a folder or a mapping.
        """
        check_is_fitted(self, "session_")
        image = _check_image(X)
        if self.model is None:
            return _ready_made(*_pick_mask(self.masks, name), image.shape[:2], self.output)
        with _OPENING:  # one thread opens the network that a pickle left out, the others wait for it
            if self.session_ is None:
                self.session_ = open_session(self.model, self.n_jobs)
        fused = np.zeros(image.shape[:2], np.float32)
        wanted = Wanted(self.target_class, self.score_threshold, self.mask_threshold, self.output == "score")
        _network_of(self.session_, self.model).paint(self.session_, _to_bytes(image), wanted, fused)
        return fused

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "session_" in state:
            state["session_"] = None
        return state


def _network_of(session: Any, path: Any) -> Any:
    inputs, outputs = session.get_inputs(), session.get_outputs()
    for network in NETWORKS:
        if network.recognises(inputs, outputs):
            return network
    expected = "; or ".join(network.expected for network in NETWORKS)
    has = f"model {str(path)!r} has inputs {shown(inputs)} and outputs {shown(outputs)}"
    raise ModelFileError(f"{has}; expected the signature {expected}.", code="detector-signature")


def _check_image(X: ArrayLike) -> NDArray[Any]:
    image = np.asarray(refuse_masked(X, "X"))
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        remedy = ""
        if image.ndim == 2:
            remedy = " Repeat a grey image with np.stack([X] * 3, axis=-1)."
        elif image.ndim == 3 and image.shape[2] == 4:
            remedy = " Leave out its alpha channel with X[..., :3]."
        elif image.ndim == 3 and image.shape[0] == 3:
            remedy = " Put its channels last with np.moveaxis(X, 0, -1)."
        raise InvalidInputError(
            f"X must be an RGB image (height, width, 3), got shape {image.shape}.{remedy}",
            code="image-rgb",
            argument="X",
        )
    return image


def _to_bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    if image.dtype == np.uint8:
        return image
    if image.dtype.kind != "f":
        raise InvalidInputError(
            f"X is an image of {image.dtype}; it must be uint8, or floats in [0, 1]. "
            "Divide it by its full scale, e.g. X / 65535 for 16 bits, X / 255 for 8.",
            code="image-type",
            argument="X",
        )
    if not ((image >= 0) & (image <= 1)).all():
        raise InvalidInputError(
            f"X is an image of floats from {float(image.min()):g} to {float(image.max()):g}; they must lie in [0, 1]. "
            "Rescale it, or pass X.astype(np.uint8) if it counts to 255.",
            code="image-range",
            argument="X",
        )
    return np.asarray(np.rint(image * 255), np.uint8)


def _check_masks(masks: Any) -> None:
    """Raise for what is wrong whatever the image is."""
    if isinstance(masks, Mapping):
        if not masks:
            raise InvalidInputError(
                "masks is an empty mapping; give it a mask for each name.", code="masks-empty", argument="masks"
            )
        for name, mask in masks.items():
            _check_mask(mask, f"masks[{name!r}]")
    elif not (isinstance(masks, str | PathLike) and Path(masks).is_dir()):
        _check_mask(masks, "masks")


def _check_mask(mask: Any, what: str) -> None:
    if isinstance(mask, str | PathLike):
        if not Path(mask).is_file():
            raise InvalidInputError(
                f"{what} is {str(mask)!r}, where there is no file.", code="file-missing", argument=what
            )
        return
    array = np.asarray(refuse_masked(mask, what))
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{what} must be an array of numbers (height, width) or a path, got {array.dtype} of shape {array.shape}.",
            code="mask-kind",
            argument=what,
        )


def _pick_mask(masks: Any, name: str | None) -> tuple[NDArray[Any], str]:
    """Return a mask, and its name in errors."""
    what = "masks"
    if isinstance(masks, Mapping):
        if name not in masks:
            shown = ", ".join(repr(key) for key in list(masks)[:5]) + (", ..." if len(masks) > 5 else "")
            raise InvalidInputError(
                f"masks has no mask named {name!r}; pass one of these to fuse: name={shown}.",
                code="mask-unnamed",
                argument="masks",
            )
        masks, what = masks[name], f"masks[{name!r}]"
    elif isinstance(masks, str | PathLike) and Path(masks).is_dir():
        if name is None:
            raise InvalidInputError(
                f"masks is the folder {str(masks)!r}; pass the name of a mask to fuse: name=...",
                code="mask-unnamed",
                argument="masks",
            )
        masks = Path(masks) / f"{name}.png"
    if isinstance(masks, str | PathLike):
        return _read_png(Path(masks)), f"The mask {str(masks)!r}"
    return np.asarray(masks), what


def _read_png(path: Path) -> NDArray[Any]:
    try:
        with import_pillow().open(path, formats=("PNG",)) as picture:  # a JPEG is not zero where it should be
            mask = np.asarray(picture)
            # A palette's entries are numbers, not shades; wider, they are not taken for scores.
            return mask.astype(np.int32) if picture.mode == "P" else mask
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        raise InvalidInputError(
            f"The mask {str(path)!r} cannot be read as a PNG image: {error}.", code="mask-unreadable"
        ) from error


def _ready_made(mask: NDArray[Any], what: str, shape: tuple[int, ...], output: str) -> NDArray[np.float32]:
    if mask.shape != shape:
        remedy = " Save it with one channel." if mask.ndim == 3 else ""
        raise InvalidInputError(
            f"{what} has shape {mask.shape}; it must be that of the image, {shape}.{remedy}",
            code="mask-size",
            argument=what,
        )
    if mask.dtype.kind == "f" and not ((mask >= 0) & (mask <= 1)).all():
        raise InvalidInputError(
            f"{what} has NaN or values outside [0, 1]; a mask of floats must lie in [0, 1].",
            code="mask-range",
            argument=what,
        )
    if output == "mask":
        return np.asarray(mask != 0, np.float32)
    if mask.dtype.kind not in "bf" and mask.dtype != np.uint8:
        raise InvalidInputError(
            f"{what} has type {mask.dtype}; scores must be bool, uint8 or floats in [0, 1].",
            code="mask-type",
            argument=what,
        )
    return mask.astype(np.float32) / np.float32(255 if mask.dtype == np.uint8 else 1)
