"""The torchvision models the importer and the fusion are tested on: name -> (make, image size, foldable, other BatchNorms)."""
from torch import nn
from torchvision import models


def vgg11_bn():
    """The real features; the classifier's three linears narrowed from 4096 (500 MB) to 64."""
    model = models.vgg11_bn(num_classes=10)
    model.avgpool = nn.AdaptiveAvgPool2d((2, 2))
    model.classifier[0] = nn.Linear(512 * 4, 64)
    model.classifier[3] = nn.Linear(64, 64)
    model.classifier[6] = nn.Linear(64, 10)
    return model


def googlenet():
    """As constructed: the auxiliary heads are there and, in eval mode, unused."""
    return models.googlenet(num_classes=10, init_weights=False)


def googlenet_pretrained():
    """As torchvision hands it out with weights: no auxiliary heads (submodules that are None), input transformed."""
    return models.googlenet(num_classes=10, init_weights=False, aux_logits=False, transform_input=True)


MODELS = {
    "resnet18": (lambda: models.resnet18(num_classes=10), 64, 20, 0),
    "resnet50": (lambda: models.resnet50(num_classes=10), 64, 53, 0),
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=10), 64, 52, 0),
    "vgg11_bn": (vgg11_bn, 64, 8, 0),
    "densenet121": (lambda: models.densenet121(num_classes=10), 64, 59, 62),
    "shufflenet_v2_x1_0": (lambda: models.shufflenet_v2_x1_0(num_classes=10), 64, 56, 0),
    "mnasnet1_0": (lambda: models.mnasnet1_0(num_classes=10), 64, 52, 0),
    "googlenet": (googlenet, 96, 57, 0),
    "googlenet_pretrained": (googlenet_pretrained, 96, 57, 0),
}

BY_DAY = ("mobilenet_v2", "shufflenet_v2_x1_0")
