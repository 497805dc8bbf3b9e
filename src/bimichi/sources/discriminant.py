"""`Discriminant`: a learned source, the log ratio of how likely targets and the rest have such values of all channels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.cluster import KMeans

from bimichi._types import Floats
from bimichi.errors import InvalidInputError

CLUSTERS = 3  # Gaussians of what is no target
RIDGE = 1e-3  # added to variances of channels in [-1, 1], so that none is 0
ENDS = (0.005, 0.995)  # quantiles of the log ratio that become -1 and 1
LARGEST = 64  # clusters that a model file may hold
BLOCK = 1 << 15  # pixels at a time


@dataclass(frozen=True, eq=False)
class Discriminant:
    """One Gaussian of targets against some of the rest.

    Parameters
    ----------
    means : ndarray of shape (1 + n, n_channels)
        Of the targets, then of clusters of the rest.
    covariances : ndarray of shape (1 + n, n_channels, n_channels)
        The same.
    shares : ndarray of shape (n,)
        Of the clusters; they add up to 1.
    low, high : float
        Log ratios that become -1 and 1; 0 is their middle.
    """

    means: Floats
    covariances: Floats
    shares: Floats
    low: float
    high: float

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(self.means.shape[1])

    @classmethod
    def learn(cls, targets: NDArray[Any], others: NDArray[Any], weight: Floats, seed: int = 0) -> Self:
        """Learn from rows of channels; `weight` says how much each of the others counts."""
        n = int(min(CLUSTERS, len(np.unique(others, axis=0))))
        cluster = KMeans(n, n_init=4, random_state=seed).fit_predict(others, sample_weight=weight)
        kept = [k for k in range(n) if (cluster == k).sum() > 1]
        groups = [(targets, np.ones(len(targets))), *((others[cluster == k], weight[cluster == k]) for k in kept)]
        means = np.array([np.average(rows, axis=0, weights=own) for rows, own in groups])
        covariances = np.array([_covariance(rows, own) for rows, own in groups])
        shares = np.array([own.sum() for _, own in groups[1:]])
        plain = cls(means, covariances, shares / shares.sum(), -1.0, 1.0)
        ratio = np.concatenate([plain.ratio(targets), plain.ratio(others)])
        low, high = np.quantile(ratio, ENDS)
        return cls(means, covariances, plain.shares, float(low), float(max(high, low + 1e-6)))

    def ratio(self, rows: NDArray[Any]) -> Floats:
        """Return the log ratio of each row."""
        parts = []
        for mean, covariance in zip(self.means, self.covariances, strict=True):
            root = np.linalg.cholesky(covariance)
            far = np.linalg.solve(root, (rows - mean).T)
            parts.append(-0.5 * (far**2).sum(axis=0) - np.log(root.diagonal()).sum())
        rest = logsumexp(np.array(parts[1:]), axis=0, b=self.shares[:, None])
        return np.asarray(parts[0] - rest)

    def rows(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return the source, in [-1, 1], of each row."""
        done = [self.ratio(rows[start : start + BLOCK]) for start in range(0, len(rows), BLOCK)]
        ratio = np.concatenate(done) if done else np.empty(0)
        return np.clip(2 * (ratio - self.low) / (self.high - self.low) - 1, -1, 1).astype(np.float32)

    def plane(self, channels: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return the source of an image."""
        rows = np.stack([channel.ravel() for channel in channels], axis=1)
        return self.rows(rows).reshape(channels[0].shape)

    def pack(self) -> dict[str, Any]:
        """Return plain data; `unpack` takes them back."""
        names = ("means", "covariances", "shares")
        return {name: getattr(self, name).tolist() for name in names} | {"low": self.low, "high": self.high}

    @classmethod
    def unpack(cls, data: Any) -> Self:
        """Take what `pack` gave; whatever else is an error."""
        means, covariances, shares = (np.array(data[name], np.float64) for name in ("means", "covariances", "shares"))
        low, high = float(data["low"]), float(data["high"])
        n, m = means.shape
        right = covariances.shape == (n, m, m) and shares.shape == (n - 1,) and 1 < n <= LARGEST
        right = right and all(np.isfinite(part).all() for part in (means, covariances, shares, [low, high]))
        if not right or low >= high or (shares < 0).any():
            raise InvalidInputError("its discriminant has impossible numbers.", code="model-bank")
        try:
            np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError as error:
            raise InvalidInputError("its discriminant has impossible covariances.", code="model-bank") from error
        return cls(means, covariances, shares, low, high)


def _covariance(rows: NDArray[Any], weight: Floats) -> Floats:
    far = rows - np.average(rows, axis=0, weights=weight)
    found = (far * weight[:, None]).T @ far / weight.sum()
    return np.asarray(found + RIDGE * np.eye(rows.shape[1]), np.float64)
