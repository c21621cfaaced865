"""Quantizes models with torch.ao.quantization and writes what the comparison needs: FOLDER NAME:SEED...

For each: NAME:SEED.pt (the float model as TorchScript), NAME:SEED.samples.pt (a list of tensors), NAME:SEED.int8.pt (Python's
result), NAME:SEED.json (how good that is, how many calls of quantized kernels it has, and the mode).
"""
import copy
import json
import math
import sys
import warnings

import torch
import torchvision
from torch import nn
from torch.ao.quantization import QConfigMapping, default_dynamic_qconfig, get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

warnings.filterwarnings('ignore')

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.BatchNorm1d(128), nn.ReLU(),
                                    nn.Dropout(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x)

class Attention(nn.Module):
    """One BERT layer, written out."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.view(2, 16, self.heads, 16).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / 4.0, -1)
        mixed = torch.matmul(weights, v).permute(0, 2, 1, 3).reshape(2, 16, 64)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 64, num_layers=2, batch_first=True)
        self.out = nn.Linear(64, 12)

    def forward(self, x):
        return self.out(self.lstm(x)[0])

def vision(name, size):
    options = {'weights': None}
    if name == 'googlenet':
        options.update(aux_logits=False, init_weights=False)
    return getattr(torchvision.models, name)(**options), (2, 3, size, size)

DYNAMIC = {'lstm'}
MODELS = {
    'mlp': lambda: (Mlp(), (8, 64)),
    'bert_layer': lambda: (Attention(), (2, 16, 64)),
    'resnet18': lambda: vision('resnet18', 64),
    'mobilenet_v2': lambda: vision('mobilenet_v2', 64),
    'mobilenet_v3_small': lambda: vision('mobilenet_v3_small', 64),
    'mnasnet0_5': lambda: vision('mnasnet0_5', 64),
    'googlenet': lambda: vision('googlenet', 64),
    'densenet121': lambda: vision('densenet121', 64),
    'lstm': lambda: (Tagger(), (2, 9, 32)),
    'squeezenet1_1': lambda: vision('squeezenet1_1', 64),
}

def settle(model, shape):
    """Statistics as after training: those of the data."""
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = None
    model.train()
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(shape))
    return model.eval()

def ratio(model, other, samples):
    signal = noise = 0.0
    with torch.no_grad():
        for sample in samples:
            x, y = model(sample).double(), other(sample).double()
            signal += float((x * x).sum())
            noise += float(((x - y) ** 2).sum())
    return 10 * math.log10(signal / max(noise, 1e-30))

def main():
    folder, draws = sys.argv[1], sys.argv[2:]
    engine = torch.backends.quantized.engine
    for draw in draws:
        name, seed = draw.split(':')
        torch.manual_seed(int(seed))
        model, shape = MODELS[name]()
        model = settle(model, shape)
        samples = [torch.randn(shape) for _ in range(6)]
        mapping = get_default_qconfig_mapping(engine)
        if name in DYNAMIC:
            mapping = QConfigMapping().set_global(default_dynamic_qconfig)
        prepared = prepare_fx(copy.deepcopy(model), mapping, (samples[0],))
        with torch.no_grad():
            for sample in samples:
                prepared(sample)
        quantized = convert_fx(prepared)
        torch.jit.save(torch.jit.script(model), f'{folder}/{draw}.pt')
        torch.jit.save(torch.jit.trace(quantized, samples[0]), f'{folder}/{draw}.int8.pt')
        torch.save(samples, f'{folder}/{draw}.samples.pt')
        modules = dict(quantized.named_modules())
        kernels = 0
        for node in quantized.graph.nodes:
            target = str(node.target)
            if node.op == 'call_module':
                kernels += 'quantized' in type(modules[target]).__module__
            elif node.op == 'call_function':
                kernels += target.startswith('quantized')
        with open(f'{folder}/{draw}.json', 'w') as file:
            json.dump({'sqnr_db': ratio(model, quantized, samples), 'kernels': kernels,
                       'mode': 'dynamic' if name in DYNAMIC else 'static'}, file)

main()
