"""One hand-made model and what is expected of it."""
from dataclasses import dataclass
from typing import Callable, Optional

import torch


@dataclass
class Case:
    name: str
    make: Callable               # -> module, ready to run (eval mode and weights included)
    inputs: tuple                # positional inputs of forward
    foldable: int = 0            # BatchNorm calls that must be fused into a convolution
    kept: int = 0                # BatchNorm calls that must stay
    optional: int = 0            # BatchNorm calls that may be fused or stay: both are right
    loads: Optional[bool] = True  # the scripted file loads; None: either is right
    error: Optional[str] = None  # text of the source line an error must show, when it does not load
    scripted: bool = True        # make a scripted file
    traced: bool = True          # make a traced file
    rtol: float = 1e-4
    compare: bool = True         # False: random or unordered, compare shapes only
    runs: bool = True            # False: this torch cannot run it on CPU; io comes from the float32 version
    note: str = ""

    def build(self):
        """The module; the same weights each time."""
        torch.manual_seed(0)
        return self.make()


def image(*shape, seed=0):
    """A float input that is the same on every run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
