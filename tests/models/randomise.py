"""Random weights as a trained model has them: no BatchNorm statistic at its default, activations of order one."""
import torch
from torch import nn

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def randomise(model, *inputs, seed=0):
    """Give `model` random weights and BatchNorm statistics, and put it in eval mode.

    With `inputs` the statistics are first measured on them (so that deep models stay sane) and then disturbed."""
    torch.manual_seed(seed)
    norms = [m for m in model.modules() if isinstance(m, BATCH_NORMS)]
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.modules.conv._ConvNd):
                gain = module.weight[0].numel() ** -0.5
                module.weight.normal_(0, 1.4 * gain)
                if module.bias is not None:
                    module.bias.normal_(0, 0.2)
        for norm in norms:
            if norm.affine:
                norm.weight.uniform_(0.6, 1.4)
                norm.weight[torch.rand_like(norm.weight) < 0.1] *= -1
                norm.bias.normal_(0, 0.3)
            if norm.track_running_stats:
                norm.running_mean.normal_(0, 0.3)
                norm.running_var.uniform_(0.5, 2.0)
                norm.num_batches_tracked.fill_(1000)
        if inputs:
            measure(model, norms, inputs)
    return model.eval()


def measure(model, norms, inputs):
    """Set the running statistics to those of `inputs`, then move each a little."""
    momenta = [norm.momentum for norm in norms]
    model.train()
    for norm in norms:
        norm.momentum = 1.0
    model(*inputs)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
        norm.running_mean.add_(torch.randn_like(norm.running_mean) * 0.1 * norm.running_var.sqrt())
        norm.running_var.mul_(torch.empty_like(norm.running_var).uniform_(0.7, 1.4)).add_(1e-3)
        norm.num_batches_tracked.fill_(1000)


def made(kind, *args):
    """A maker of that model, randomised."""
    return lambda: randomise(kind(*args))
