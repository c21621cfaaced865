"""The models of `tools/bench --models`: torchvision's and text models of torch.nn, with batch-norm statistics that are not the
defaults. make(name, batch) gives the module and its inputs."""
import torch
from torch import nn

VISION = ["resnet18", "resnet50", "resnext50_32x4d", "densenet121", "googlenet", "squeezenet1_1", "mobilenet_v2",
          "mobilenet_v3_small", "mnasnet0_5", "efficientnet_b0", "shufflenet_v2_x1_0", "regnet_y_400mf", "vgg11_bn"]
TEXT = ["vit", "bert", "gpt", "lstm", "mlp"]
NAMES = VISION + TEXT


class Attention(nn.Module):
    """Written out, as models that are exported have it."""

    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
        if self.causal:
            scores = scores + torch.full((t, t), float("-inf")).triu(1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, width=384, heads=6, layers=6):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Text(nn.Module):
    def __init__(self, causal: bool, width=256, heads=4, layers=4, words=8000, length=64):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads, causal) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words if causal else 2)
        self.causal = causal

    def forward(self, ids):
        x = self.norm(self.blocks(self.words(ids) + self.positions))
        return self.head(x if self.causal else x[:, 0])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(8000, 256), nn.LSTM(256, 256, 2, batch_first=True), nn.Linear(256, 2)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0][:, -1])


def image_model(name):
    import torchvision
    kwargs = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    return getattr(torchvision.models, name)(weights=None, **kwargs)


def make(name, batch):
    torch.manual_seed(0)
    ids = torch.randint(0, 8000, (batch, 64))
    image = torch.randn(batch, 3, 224, 224)
    text = {"bert": lambda: (Text(False), ids), "gpt": lambda: (Text(True), ids), "lstm": lambda: (Recurrent(), ids),
            "vit": lambda: (ViT(), image),
            "mlp": lambda: (nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)),
                            torch.randn(batch, 64))}
    model, x = text[name]() if name in text else (image_model(name), image)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    return model.eval(), x


def shape_of(x):
    return "x".join(str(size) for size in x.shape) + (":int64" if x.dtype == torch.int64 else "")
